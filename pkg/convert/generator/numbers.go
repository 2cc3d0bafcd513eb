package generator

import (
	"math"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/corollary-dev/corollary/pkg/convert/places"
)

// precise is the largest whole number up to which a float64 has all of them.
const precise = 1 << 53

// rangeOf are the bounds of whole numbers that a schema allows; low > high: there is none.
func rangeOf(v *structuralschema.ValueValidation) (low, high int64) {
	low, high = math.MinInt64, math.MaxInt64
	if v.Format == "int32" {
		low, high = math.MinInt32, math.MaxInt32
	}
	if v.Minimum != nil && *v.Minimum > math.MinInt64 {
		if low = max(low, int64(math.Ceil(*v.Minimum))); v.ExclusiveMinimum && float64(low) == *v.Minimum {
			low++
		}
	}
	if v.Maximum != nil && *v.Maximum < math.MaxInt64 {
		if high = min(high, int64(math.Floor(*v.Maximum))); v.ExclusiveMaximum && float64(high) == *v.Maximum {
			high--
		}
	}
	return low, high
}

func (g *Generator) integersOf(v *structuralschema.ValueValidation) []any {
	low, high := rangeOf(v)
	wanted := []int64{0, 1, -1, low, low + 1, high - 1, high, precise + 1, -(precise + 1), 7, math.MaxInt32,
		math.MinInt32, math.MaxInt32 + 1}
	for _, n := range g.numbers {
		wanted = append(wanted, n-1, n, n+1)
	}
	for i, n := range g.numbers { // and between any two
		if i > 0 {
			wanted = append(wanted, n/2+g.numbers[i-1]/2)
		}
	}
	if v.MultipleOf != nil {
		for _, n := range slices.Clone(wanted) {
			wanted = append(wanted, int64(math.Trunc(float64(n) / *v.MultipleOf)**v.MultipleOf))
		}
	}
	var values []any
	for _, n := range wanted {
		if n >= low && n <= high && isMultiple(v, float64(n)) && !slices.Contains(values, any(n)) {
			values = append(values, n)
		}
	}
	return values
}

// integer is any whole number in the range: of any magnitude, or near its ends.
func (g *Generator) integer(v *structuralschema.ValueValidation) any {
	low, high := rangeOf(v)
	n := g.random.Int64() >> g.random.IntN(63)
	if g.random.IntN(2) == 0 {
		n = -n
	}
	if low > high || n >= low && n <= high {
		return n
	}
	if width := uint64(high) - uint64(low); width < math.MaxInt64 {
		return low + g.random.Int64N(int64(width)+1)
	}
	return high
}

// usualNumbers are of each kind that floating-point numbers have: whole, fractions with and without an exact form, of
// any magnitude, subnormal, and whole numbers that a float64 does not have.
var usualNumbers = []any{
	int64(0), int64(1), 0.5, -1.5, 0.125, 0.1, 0.29, 1.005, -0.001, 1.0 / 3, 2.5, 99.99,
	123456.789, 1e-7, 1e21, 1e300, -1e300,
	math.SmallestNonzeroFloat64, 2.2250738585072014e-308, math.MaxFloat64, -math.MaxFloat64,
	int64(precise - 1), int64(precise + 1), int64(-precise - 1), float64(precise + 2), int64(math.MaxInt64),
	int64(math.MinInt64), 9.3e18,
	int64(math.MaxInt32), int64(math.MaxInt32 + 1), 16777217.0,
}

func (g *Generator) numbersOf(v *structuralschema.ValueValidation) []any {
	wanted := slices.Clone(usualNumbers)
	for _, n := range g.numbers {
		wanted = append(wanted, n, float64(n)+0.5, math.Nextafter(float64(n), math.Inf(1)),
			math.Nextafter(float64(n), math.Inf(-1)))
	}
	for _, bound := range []*float64{v.Minimum, v.Maximum} {
		if bound != nil {
			wanted = append(wanted, *bound, math.Nextafter(*bound, math.Inf(1)), math.Nextafter(*bound, math.Inf(-1)), *bound/2)
		}
	}
	if m := v.MultipleOf; m != nil { // the API server takes what is off by a billionth
		wanted = append(wanted, *m, 3**m, 7**m, 29**m, 57**m, 3**m*(1+1e-12), 1e6**m)
	}
	var values []any
	for _, n := range wanted {
		if allows(v, n) && !slices.ContainsFunc(values, func(has any) bool { return places.Equal(has, n) }) {
			values = append(values, n)
		}
	}
	return values
}

// number is any number in the range: of few digits, or any other.
func (g *Generator) number(v *structuralschema.ValueValidation) any {
	low, high := -1e6, 1e6
	if v.Minimum != nil {
		low, high = *v.Minimum, *v.Minimum+2e6
	}
	if v.Maximum != nil {
		if high = *v.Maximum; v.Minimum == nil {
			low = high - 2e6
		}
	}
	n := low + g.random.Float64()*(high-low)
	if g.random.IntN(2) == 0 {
		unit := math.Pow10(g.random.IntN(5))
		n = math.Round(n*unit) / unit
	}
	if v.MultipleOf != nil {
		n = math.Round(n / *v.MultipleOf) * *v.MultipleOf
	}
	return n
}

func allows(v *structuralschema.ValueValidation, n any) bool {
	number, isFloat := n.(float64)
	if whole, ok := n.(int64); ok {
		number = float64(whole)
	} else if !isFloat {
		return false
	}
	isBelow := v.Minimum != nil && (number < *v.Minimum || v.ExclusiveMinimum && number == *v.Minimum)
	isAbove := v.Maximum != nil && (number > *v.Maximum || v.ExclusiveMaximum && number == *v.Maximum)
	return !isBelow && !isAbove && isMultiple(v, number)
}

func isMultiple(v *structuralschema.ValueValidation, n float64) bool {
	return v.MultipleOf == nil || validate.MultipleOf("", "", n, *v.MultipleOf) == nil
}

// EveryValue lists the values of a scalar; nil where there are more than most.
func EveryValue(s *structuralschema.Structural, most int) (values []any) {
	v := validationOf(s)
	switch {
	case len(v.Enum) > 0:
		for _, e := range v.Enum {
			values = append(values, e.Object)
		}
	case s.Type == "boolean":
		values = []any{false, true}
	case s.Type == "integer":
		low, high := rangeOf(v)
		if low > high || uint64(high)-uint64(low) >= uint64(most) {
			return nil
		}
		for n := low; n <= high; n++ {
			values = append(values, n)
		}
	}
	return values
}
