"""The page: tables in a browser, made on the server; what a reader asked for is wholly in the address."""
