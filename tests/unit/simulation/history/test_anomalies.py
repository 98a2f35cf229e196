"""The report that a checker makes."""

from ottla.simulation.history.anomalies import CASES_MAX, Anomaly, Report
from ottla.simulation.history.operations import Kind, Operation, Outcome

SENT = Operation(4, "p", Outcome.OK, Kind.SEND, 0, 1)


def test_a_report_without_anomalies_is_good() -> None:
    report = Report(operations=7)
    assert report.is_good
    assert str(report) == "7 operations, no anomaly"


def test_an_anomaly_is_told_with_its_operations() -> None:
    report = Report()
    report.note(Anomaly.LOST_WRITE, "it is gone", SENT)
    assert not report.is_good
    assert str(report) == "lost write x 1: it is gone (operations 4)"


def test_what_is_normal_does_no_harm() -> None:
    report = Report()
    report.note(Anomaly.POLL_SKIP, "a group did it", SENT, is_normal=True)
    assert report.is_good
    assert report.normal[Anomaly.POLL_SKIP].count == 1


def test_of_many_cases_only_some_are_kept() -> None:
    report = Report()
    for _ in range(CASES_MAX + 5):
        report.note(Anomaly.UNSEEN, "gone", SENT)
    findings = report.anomalies[Anomaly.UNSEEN]
    assert findings.count == CASES_MAX + 5
    assert len(findings.cases) == CASES_MAX
