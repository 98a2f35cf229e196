from ottla.broker.settings.settings import Settings, zero_configuration
from ottla.simulation.plans.group_plan import Kind, group_settings, groups_for


def test_seeds_have_groups_of_all_kinds_or_none() -> None:
    plans = [groups_for(seed) for seed in range(200)]
    assert any(not groups for groups in plans)
    assert {group.kind for groups in plans for group in groups} == set(Kind)
    assert groups_for(7) == groups_for(7)


def test_a_broker_is_set_as_its_groups_need_it() -> None:
    groups = next(groups for seed in range(9) if (groups := groups_for(seed)))
    settings = group_settings(groups, 1)
    Settings.load(zero_configuration("/data") | settings, host_name=lambda: "host")
    assert settings["group.consumer.session.timeout.ms"] == str(groups[0].session_ms)
    assert group_settings((), 1) == {}


def test_a_plan_says_what_a_group_is() -> None:
    group = next(group for seed in range(50) for group in groups_for(seed) if group.static)
    assert str(group) == f"{group.name} of {group.members} ({group.static} static)"
