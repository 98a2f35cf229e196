"""The file `quorum-state` in the directory of the metadata log. Blocking, except `write`."""

from ottla.env.environment import Environment
from ottla.model.errors import Damaged
from ottla.quorum.election_state import FILE_NAME, ElectionState, from_json, to_json
from ottla.quorum.voter_history import VoterHistory
from ottla.storage.checkpoint import replace_file


class ElectionStateFile:
    def __init__(self, env: Environment, directory: str, history: VoterHistory) -> None:
        """Read the file, if there is one. Damaged if it is not a valid election state."""
        self._env = env
        self._path = f"{directory}/{FILE_NAME}"
        self._history = history
        self.state = self._read()

    async def write(self, state: ElectionState) -> None:
        """Replace and sync the file in a worker."""
        await self._env.workers.run(self._write, state)
        self.state = state

    def _read(self) -> ElectionState:
        if not self._env.disk.exists(self._path):
            return ElectionState()
        try:
            return from_json(self._env.disk.read(self._path))
        except ValueError as error:
            raise Damaged(self._path, 0, str(error)) from error

    def _write(self, state: ElectionState) -> None:
        voters = tuple(self._history.voters.by_id)
        content = to_json(state, self._history.kraft_version, voters)
        replace_file(self._env.disk, self._path, content)
