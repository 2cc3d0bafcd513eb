// Package simpleschema reads SimpleSchema, kro's notation for the fields of a custom resource ("replicas: integer | default=1
// minimum=1"), and writes the OpenAPI schema that it stands for. It checks the notation; whether an API server takes the schema
// the kinds package tells.
package simpleschema
