package config

import "strings"

// ConstantLabels are the labels of conventions whose values have no hole: every object of the operator has them.
func (o *Operator) ConstantLabels() map[string]string {
	constant := map[string]string{}
	left := "{{"
	if len(o.Delimiters) == 2 {
		left = o.Delimiters[0]
	}
	for key, value := range o.Conventions.Labels {
		if !strings.Contains(value, left) {
			constant[key] = value
		}
	}
	return constant
}
