"""The quorum of controllers: its driver, the metadata log, the active controller."""
