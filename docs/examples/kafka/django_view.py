"""A Django view that sends, in one file, with confluent-kafka."""

from concurrent.futures import Future
from functools import cache

import django
from confluent_kafka import KafkaException, Producer
from django.conf import settings
from django.http import JsonResponse
from django.test import Client
from django.urls import path

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="only for this example")
django.setup()


@cache
def producer():
    return Producer({"bootstrap.servers": "localhost:9092"})


def order(request, number):
    stored = Future()

    def report(error, message):
        if error:
            stored.set_exception(KafkaException(error))
        else:
            stored.set_result(message.offset())

    producer().produce("DjangoOrders", b"%d" % number, on_delivery=report)
    producer().flush(3)
    return JsonResponse({"offset": stored.result(timeout=0)})


urlpatterns = [path("orders/<int:number>", order)]

if __name__ == "__main__":
    print(Client().post("/orders/7").json())
