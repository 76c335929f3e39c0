"""A Flask application that sends. Each worker process makes its producer with its first request.

    $ python flask_app.py
    {'stored': 'SEND_OK'}

Serve it with any WSGI server, also one that forks.
"""

from functools import cache

from flask import Flask

from twisted_mq.blocking import Message, Producer

app = Flask(__name__)


@cache
def producer() -> Producer:
    started = Producer(group="web")
    started.start()
    return started


@app.post("/orders/<int:number>")
def order(number: int) -> dict[str, str]:
    result = producer().send(Message("FlaskOrders", b"%d" % number), timeout=3)
    return {"stored": result.status.name}


if __name__ == "__main__":
    print(app.test_client().post("/orders/7").get_json())
