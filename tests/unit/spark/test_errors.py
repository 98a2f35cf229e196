import pickle

from ottla.spark.errors import BadOption, DataLoss, SparkError, Unreadable


def test_an_option_is_named_with_its_value() -> None:
    failure = BadOption("minPartitions", "many", "it must be a number")
    assert str(failure) == "option 'minPartitions' is 'many': it must be a number"
    assert isinstance(failure, ValueError)


def test_all_errors_have_one_root() -> None:
    for kind in (BadOption, DataLoss, Unreadable):
        assert issubclass(kind, SparkError)
    assert str(pickle.loads(pickle.dumps(DataLoss("gone")))) == "gone"
