"""Access: each credential is issued once, and only a valid one can be revoked."""

from dataclasses import dataclass, field

from accountant.auditor.bodies import AccessBody
from accountant.auditor.credentials import Granted
from accountant.auditor.wrong import Wrong


@dataclass(slots=True)
class Access:
    """Credentials by their names, and by their proofs."""

    issued: set[str] = field(default_factory=set)
    in_force: dict[str, tuple[str, str]] = field(default_factory=dict)

    def take(self, body: AccessBody) -> None:
        """Apply an entry; Wrong if it cannot follow those before it."""
        if isinstance(body, Granted):
            if body.id in self.issued:
                raise Wrong("a credential issued under a name that was used before")
            if body.shown in self.in_force.values():
                raise Wrong("a credential that is shown as another in force is")
            self.issued.add(body.id)
            self.in_force[body.id] = body.shown
        elif self.in_force.pop(body.id, None) is None:
            raise Wrong("a credential revoked that is not in force")
