"""PxWebApi, the interface of PxWeb: version 2, and as much of version 1 as its clients need."""
