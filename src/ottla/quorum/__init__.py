"""Who leads the metadata log: voters, epochs and votes, as KRaft keeps them."""
