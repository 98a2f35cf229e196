import pickle
import subprocess
import sys

from ottla.spark.arrow.schema import spark_schema
from ottla.spark.source.batch_reader import BatchReader
from ottla.spark.source.stream_reader import StreamReader
from pyspark_ottla import DefaultSource

OPTIONS = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "x"}


def test_the_format_is_found_by_its_name_and_travels() -> None:
    assert DefaultSource.name() == "ottla"
    made = pickle.loads(pickle.dumps(DefaultSource({**OPTIONS, "columns": "value"})))
    schema = made.schema()
    assert schema == spark_schema(("value",))
    assert isinstance(made.reader(schema), BatchReader)
    assert isinstance(made.streamReader(schema), StreamReader)


def test_the_package_and_the_tools_never_load_what_only_spark_needs() -> None:
    code = (
        "import sys, ottla, ottla.cli.main, ottla.spark, ottla.testing, ottla.client.blocking;"
        "heavy = {'numpy', 'pandas', 'pyarrow', 'pyspark', 'deltalake'} & set(sys.modules);"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
