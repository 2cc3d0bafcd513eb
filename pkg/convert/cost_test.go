package convert_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/pkg/convert/prove"
)

// BenchmarkProve proves a conversion of many fields.
func BenchmarkProve(b *testing.B) {
	for _, n := range []int{50, 200} {
		b.Run(fmt.Sprint(n, " texts"), func(b *testing.B) {
			var fields strings.Builder
			for i := range n {
				fmt.Fprintf(&fields, ", f%d: {type: string}", i)
			}
			crd := crdOf("{a: {type: string, default: x}"+fields.String()+"}", "{a: {type: string, default: x}"+fields.String()+"}")
			c, _ := compile(b, crd, append(conversionOf(steps("self.spec.a + 'x'", "self.spec.a.endsWith('x') ? "+
				"self.spec.a.substring(0, self.spec.a.size() - 1) : self.spec.a")), "\npreserve: {annotation: example.com/data}\n"...))
			for b.Loop() {
				if _, err := prove.Prove(b.Context(), c, prove.Options{Seed: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
