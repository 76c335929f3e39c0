"""Catalogs of a warehouse on loopback, each one process: Hive's metastore, and Iceberg's catalog by REST.

The metastore is that of Spark's own jars, with its tables in Derby.
"""

from __future__ import annotations

from pathlib import Path

from interop.peers.java_objects import SPARK_JARS, JavaObjects
from interop.peers.toolchain import ICEBERG

REST = """<Configure id="Server" class="org.eclipse.jetty.server.Server">
  <New id="tables" class="org.apache.iceberg.jdbc.JdbcCatalog">
    <Call name="setConf"><Arg><New class="org.apache.hadoop.conf.Configuration"/></Arg></Call>
    <Call name="initialize">
      <Arg>central</Arg>
      <Arg><Map>
        <Entry><Item>uri</Item><Item>jdbc:sqlite:{directory}/catalog.db</Item></Entry>
        <Entry><Item>warehouse</Item><Item>{directory}/warehouse</Item></Entry>
        <Entry><Item>jdbc.schema-version</Item><Item>V1</Item></Entry>
      </Map></Arg>
    </Call>
  </New>
  <Call name="addConnector"><Arg><New class="org.eclipse.jetty.server.ServerConnector">
    <Arg><Ref refid="Server"/></Arg>
    <Set name="host">127.0.0.1</Set>
    <Set name="port">{port}</Set>
  </New></Arg></Call>
  <Set name="handler"><New class="org.eclipse.jetty.servlet.ServletContextHandler">
    <Call name="addServlet">
      <Arg><New class="org.eclipse.jetty.servlet.ServletHolder"><Arg>
        <New class="org.apache.iceberg.rest.RESTCatalogServlet"><Arg>
          <New class="org.apache.iceberg.rest.RESTCatalogAdapter"><Arg><Ref refid="tables"/></Arg></New>
        </Arg></New>
      </Arg></New></Arg>
      <Arg>/*</Arg>
    </Call>
  </New></Set>
</Configure>
"""
HIVE = """<Configure class="java.lang.Object">
  <Call class="org.apache.hadoop.hive.metastore.txn.TxnDbUtil" name="prepDb">
    <Arg><New class="org.apache.hadoop.hive.conf.HiveConf"/></Arg>
  </Call>
  <Call class="org.apache.hadoop.hive.metastore.HiveMetaStore" name="main">
    <Arg><Array type="java.lang.String"><Item>-p</Item><Item>{port}</Item></Array></Arg>
  </Call>
</Configure>
"""
"""Without `prepDb` it has no tables for locks, which are otherwise made by a script of Hive's that Spark does not have."""


class RestCatalog(JavaObjects):
    """Iceberg's catalog by REST. Hadoop's classes are those of Spark."""

    xml, jars = REST, ICEBERG

    @property
    def more_jars(self) -> list[Path]:
        return list(SPARK_JARS.glob("hadoop-client-*.jar"))

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class HiveMetastore(JavaObjects):
    """Hive's metastore, as Spark has it."""

    xml, jars = HIVE, ICEBERG

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    @property
    def more_jars(self) -> list[Path]:
        return [SPARK_JARS / "*"]

    @property
    def properties(self) -> dict[str, str]:
        return {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:{self.directory}/metastore;create=true",
            "derby.stream.error.file": f"{self.directory}/derby.log",
            "datanucleus.schema.autoCreateAll": "true",
            "datanucleus.connectionPoolingType": "none",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": f"{self.directory}/warehouse",
            "hive.async.log.enabled": "false",
            "hive.log.dir": str(self.directory),
        }
