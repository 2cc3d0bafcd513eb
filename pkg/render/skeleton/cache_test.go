package skeleton

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/pkg/render/values"
)

func TestCacheIsBoundedByBytes(t *testing.T) {
	c := NewCache(20_000)
	text := "a:"
	for i := range 200 {
		text += fmt.Sprintf("\n  - %s", AppendPlaceholder(nil, KindValue, i))
		parsed, err := Parse([]byte(text), values.NewBudget(values.Limits{}, nil))
		if err != nil {
			t.Fatal(err)
		}
		c.Put([]byte(text), parsed)
		if c.size > 20_000 {
			t.Fatalf("the cache holds %d bytes", c.size)
		}
		if kept := c.Get([]byte(text)); kept != nil && kept != parsed {
			t.Fatalf("another skeleton is kept for %q", strings.TrimSpace(text))
		}
	}
	sum := 0
	for text, e := range c.entries {
		sum += len(text) + e.Value.(*cached).skeleton.size
	}
	if len(c.entries) == 0 || len(c.entries) != c.order.Len() || sum != c.size {
		t.Errorf("%d entries, %d in order, %d bytes of %d", len(c.entries), c.order.Len(), sum, c.size)
	}
}
