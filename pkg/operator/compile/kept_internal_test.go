package compile

import (
	"testing"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// TestReadsItem: in doubt a name is not made of the item, or one item would get the values of another.
func TestReadsItem(t *testing.T) {
	c := &config.Operator{}
	c.Delimiters = []string{"{{", "}}"}
	for text, want := range map[string]bool{
		"{{item}}": true, "x-{{item.name|lower}}": true, "{{-item-}}": true, "{{(item).name}}": true,
		"item-{{.metadata.name}}": false, "{{.spec.item}}": false, "{{printf%s-item.metadata.name}}": false, "{{items}}": false, "": false,
	} {
		if got := readsItem(&operator.Settings{Config: c}, text); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
