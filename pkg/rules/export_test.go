package rules

// What the tests of translations share.
var (
	AddRandom = addRandom
	ToJSON    = toJSON
	Envs      = envs
)

// Random returns functions that write random expressions and objects.
func Random(pick func(n int) int) (expr func(depth int) string, object func(depth int) map[string]any) {
	w := &writer{pick: pick}
	return w.expr, w.object
}
