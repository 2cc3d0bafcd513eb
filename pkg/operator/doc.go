// Package operator has the values that pass between the steps of one reconciliation: what a config says (Settings,
// Downstream), what an upstream asks for (Desired), what is known (Input), what is decided (Decision) and what came of
// it (Result).
//
// They are plain structs. No method asks an API server or evaluates a program of the config: what a rule or an
// expression says is a fact among the others.
package operator
