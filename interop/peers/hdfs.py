"""HDFS on loopback: a name node and a data node in one process, which keep their files in one directory."""

from __future__ import annotations

from pathlib import Path

from interop.peers.java_objects import SPARK_JARS, JavaObjects
from interop.peers.toolchain import HDFS

CLUSTER = """<Configure class="java.lang.Object">
  <New id="settings" class="org.apache.hadoop.conf.Configuration">
    <Call name="set"><Arg>hdfs.minidfs.basedir</Arg><Arg>{directory}/data</Arg></Call>
  </New>
  <New class="org.apache.hadoop.hdfs.MiniDFSCluster$Builder">
    <Arg><Ref refid="settings"/></Arg>
    <Call name="nameNodePort">
      <Arg type="int">{port}</Arg>
      <Call name="build"><Call name="waitActive"/></Call>
    </Call>
  </New>
</Configure>
"""


class HdfsCluster(JavaObjects):
    """A name node at `port`."""

    xml, jars = CLUSTER, HDFS

    @property
    def more_jars(self) -> list[Path]:
        return list(SPARK_JARS.glob("hadoop-client-*.jar"))

    @property
    def uri(self) -> str:
        return f"hdfs://127.0.0.1:{self.port}"
