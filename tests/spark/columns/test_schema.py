"""The schema: names, Spark's types, Arrow's types."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from twisted_mq.protocol.layouts.derive import field_table
from twisted_mq.protocol.layouts.record import MESSAGE
from twisted_mq.spark.columns.schema import COLUMN_NAMES, COLUMNS, arrow_schema, spark_ddl

NAMES_OF_THE_TABLE = (
    "topic queueId queueOffset physicalOffset file store brokerName tags keys uniqKey properties flag sysFlag bornTimestamp "
    "storeTimestamp bornHost storeHost reconsumeTimes preparedTransactionOffset storeSize bodyCRC crcOk body"
)


def test_names_and_types() -> None:
    assert " ".join(COLUMN_NAMES) == NAMES_OF_THE_TABLE
    assert spark_ddl(("queueId", "queueOffset", "properties", "bornTimestamp", "body")) == (
        "`queueId` int, `queueOffset` bigint, `properties` map<string,string>, `bornTimestamp` timestamp, `body` binary"
    )


def test_arrow_types_are_those_that_spark_expects(session: SparkSession) -> None:
    assert arrow_schema(COLUMN_NAMES) == to_arrow_schema(StructType.fromDDL(spark_ddl(COLUMN_NAMES)), timezone="UTC")


def test_copied_columns_name_fields_of_the_record() -> None:
    fields = {field.name for field in field_table(MESSAGE, sys_flag=0)}
    copied = {column.field for column in COLUMNS if column.field}
    assert copied == fields - {"magic", "body_length"}
