"""Send from forked processes. A child makes its own producer; the parent's refuses to work there.

$ python fork.py
ForkedProcess
SEND_OK
"""

import multiprocessing

from twisted_mq.blocking import ForkedProcess, Message, Producer


def work(inherited: Producer) -> None:
    try:
        inherited.send(Message("ForkOrders", b"never sent"))
    except ForkedProcess as error:
        print(type(error).__name__)
    with Producer(group="children") as producer:
        print(producer.send(Message("ForkOrders", b"from the child")).status.name, flush=True)


with Producer(group="parent") as producer:
    producer.send(Message("ForkOrders", b"from the parent"))
    child = multiprocessing.get_context("fork").Process(target=work, args=(producer,))
    child.start()
    child.join()
