from ottla.spark.pipelines.failures import line_in, sentence_of

OF_A_TASK = """\
An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "site-packages/pyspark/sql/utils.py", line 166, in call
    raise e
  File "orders.py", line 7, in <lambda>
    return orders.select(udf(lambda o: 1 // (o - o), "long")("offset"))
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "orders.py", line 7, in <lambda>
    return orders.select(udf(lambda o: 1 // (o - o), "long")("offset"))
                                       ~~^^~~~~~~~~
ZeroDivisionError: integer division or modulo by zero

=== Streaming Query ===
Identifier: lake [id = 95c44e3b]
"""
OF_SPARK = """\
An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "site-packages/pyspark/sql/utils.py", line 166, in call
    raise e
pyspark.errors.exceptions.captured.ArithmeticException: [DIVIDE_BY_ZERO] Division by zero. \
Use `try_divide`. SQLSTATE: 22012
== SQL (line 1, position 1) ==
"""


def test_the_sentence_is_found_in_what_spark_says() -> None:
    long = (
        "[STREAM_FAILED] Query terminated\nTraceback (most recent call last):\n  File x\n"
        "ottla.spark.errors.BadOption: option 'topic' is 'x': there is no such topic\n"
        "\tat org.apache.spark.Foo\n"
    )
    assert sentence_of(long) == "option 'topic' is 'x': there is no such topic"
    table = "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found. SQLSTATE: 42P01; line 1"
    assert sentence_of(table) == "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found."


def test_the_error_of_a_task_is_its_innermost_one() -> None:
    assert sentence_of(OF_A_TASK) == "ZeroDivisionError: integer division or modulo by zero"
    assert sentence_of(OF_SPARK) == "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide`."


def test_the_line_of_the_file_is_found_in_the_traceback() -> None:
    assert line_in("orders.py", OF_A_TASK) == 7
    assert line_in("orders.py", OF_SPARK) is None


def test_an_error_without_text_is_named_by_its_class() -> None:
    assert sentence_of(ValueError()) == "ValueError"
