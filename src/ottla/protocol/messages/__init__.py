"""One module per API, named as Kafka names the API, each with a `Request` and a `Response`."""
