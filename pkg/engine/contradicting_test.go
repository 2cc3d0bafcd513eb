package engine_test

import (
	"fmt"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestOperatorsShareARecord: two operators with contradicting selectors record their objects at the same place of one status. What the other
// one has recorded is not one's own when an upstream changes sides: it is neither deleted nor written to.
func TestOperatorsShareARecord(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason, policy string
		both                 bool
	}{
		{"orphan", "only the other operator's annotation marks it", "Orphan", false},
		{"delete", "it has an owner reference to the upstream, as one's own would", "Delete", false},
		{"orphan, both run", "the other one releases it meanwhile, and leaves alone what the new one creates", "Orphan", true},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			of := func(tier, policy string) string {
				conf := watched(fill(widgetConfig, ns, name+"-"+tier), "labelSelector: {matchLabels: {tier: "+tier+"}}")
				return with(replaceOnce(t, conf, "{{ .spec.name | default .metadata.name }}", `"{{ .metadata.name }}-`+tier+`"`), "deletionPolicy: "+policy)
			}
			gold, silver := of("gold", row.policy), of("silver", "Delete")
			configs := []string{gold}
			if row.both {
				configs = append(configs, silver)
			}
			r := start(t, testkit.Config(t), configs...).ready()
			testkit.Apply(t, ns, "{apiVersion: test.example.com/v1, kind: Widget, metadata: {name: a, labels: {tier: gold}}, spec: {data: {key: value}}}")
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			theirs := waitData(t, ns, "a-gold", "key", "value")
			if !row.both {
				r.halt()
			}
			testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"labels":{"tier":"silver"}}}`)
			if !row.both {
				start(t, testkit.Config(t), silver).ready()
			}
			waitData(t, ns, "a-silver", "key", "value")
			never(t, func() (bool, string) {
				cm, own := testkit.Find(t, configMaps, ns, "a-gold"), testkit.Get(t, configMaps, ns, "a-silver")
				switch {
				case cm == nil || cm.GetUID() != theirs.GetUID():
					return true, "the other operator's object is gone"
				case !row.both && cm.GetResourceVersion() != theirs.GetResourceVersion():
					return true, fmt.Sprintf("it was written to: %v", cm.Object)
				}
				return len(own.GetOwnerReferences()) != 1, fmt.Sprintf("the new object has lost its marks: %v", own.Object)
			})
		}))
	}
}
