"""A Django view that sends, in one file. Each worker process makes its producer with its first request.

$ python django_view.py
{'stored': 'SEND_OK'}
"""

from functools import cache

import django
from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.test import Client
from django.urls import path

from twisted_mq.blocking import Message, Producer

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="only for this example")
django.setup()


@cache
def producer() -> Producer:
    started = Producer(group="web")
    started.start()
    return started


def order(request: HttpRequest, number: int) -> JsonResponse:
    result = producer().send(Message("DjangoOrders", b"%d" % number), timeout=3)
    return JsonResponse({"stored": result.status.name})


urlpatterns = [path("orders/<int:number>", order)]

if __name__ == "__main__":
    print(Client().post("/orders/7").json())
