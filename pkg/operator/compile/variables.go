package compile

import (
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// readParameters takes the constants of the config over as JSON values.
func readParameters(c *compilation) {
	text, err := utiljson.Marshal(c.file.Operator.Parameters)
	if err == nil && len(c.file.Operator.Parameters) > 0 {
		err = utiljson.Unmarshal(text, &c.p.Params)
	}
	if err != nil {
		c.fail("parameters", "write values that JSON has", "%v", err)
	}
}

// compileVariables compiles the config's variables, each for those after it.
func compileVariables(c *compilation) {
	for i, v := range c.file.Operator.Variables {
		path := fmt.Sprintf("variables[%d].expression", i)
		program := c.expression(path, func() (*rules.Program, error) { return c.env.Variable(v.Name, v.Expression) })
		c.p.Variables = append(c.p.Variables, desired.Variable{Name: v.Name, Program: program})
	}
}
