package engine_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// Items that follow from the objects that they make are followed at growing intervals, though each of these objects is a new one.
func TestItemsOfOwnOutput(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ reason, items string }{
		{"the object moves with each write", "size(inputs.own) == 0 ? ['1'] : [string(int(inputs.own[size(inputs.own) - 1].data.value) + 1)]"},
		{"one more object with each write", "inputs.own.map(o, o.data.value) + [string(size(inputs.own))]"},
	} {
		for _, status := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, with status %t", row.reason, status), bubbled(func(t *testing.T) {
				o := opponent{t, testkit.Namespace(t), testkit.Unique(t)}
				conf := strings.NewReplacer("downstreams:\n  - name", "inputs:\n  - {name: own, apiVersion: v1, kind: ConfigMap, list: {labelSelector: {matchLabels: {NAME.example.com/managed: \"yes\"}}}}\ndownstreams:\n  - name",
					"items: self.spec.workers", fmt.Sprintf("items: %q\n      maxItems: 1000", row.items), "    when: item.?enabled.orValue(true)\n", "",
					`{{ item.name }}"`, `{{ printf "%06d" (int item) }}"`, "{{ item.value }}", "{{ item }}", "events: None", "events: Warnings",
					"minDelay: 1s, maxDelay: 10s", "minDelay: 2s, maxDelay: 1h").Replace(poolConfig)
				if !status {
					conf = statusOff(conf)
				}
				_, counter := startCounted(t, fill(conf, o.ns, o.name))
				testkit.Apply(t, o.ns, object("Pool", "a", "{}"))
				loop{says: []string{"input own"}}.isReported(t, o)
				counter.Reset()
				over := time.Now().Add(6 * time.Second)
				<-time.After(time.Until(over))
				if n := counter.Total(testkit.Before(over), func(r testkit.Request) bool { return r.Resource != "events" }); n > 15 {
					t.Errorf("%d requests in 6 s: %v", n, counter.Snapshot())
				}
			}))
		}
	}
}

// What others write into an object that another downstream reads is followed at once, however often.
func TestBurstsOfSiblingsAreNotHeldBack(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.NewReplacer("events: None", "events: Warnings", "minDelay: 1s, maxDelay: 10s", "minDelay: 10m, maxDelay: 1h").Replace(related(ns, name))
		start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("w", "{data: {}}"))
		testkit.Eventually(t, patience, func() (bool, string) { return testkit.Find(t, configMaps, ns, "w-service") != nil, "missing" })
		for i := range 20 {
			patchData(t, ns, "w-service", fmt.Sprintf(`{"address":"x","port":"%d"}`, i))
			waitData(t, ns, "w-page", "port", strconv.Itoa(i))
		}
	})
}
