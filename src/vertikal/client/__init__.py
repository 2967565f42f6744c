"""Python access to a party's service, for notebooks and scripts of its owner.

Everything goes through the control socket of the service, as the commands do, or is read in the
party's own store. Only what an owner does with a party enters here; what a service does is `node`.
"""

from vertikal.client.party import Party

__all__ = ["Party"]
