// Package simpleschema reads SimpleSchema, kro's notation for the fields of a custom resource ("replicas: integer |
// default=1 minimum=1"), and converts it to an OpenAPI schema. It checks the notation; package kinds checks whether an
// API server accepts the schema.
package simpleschema
