package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// Two downstreams of a custom kind take each the next name by an edit, the second after the first.
func TestR8ShiftedNamesAfter(t *testing.T) {
	t.Parallel()
	for _, after := range []string{"", "    after: [{name: config, until: Created}]\n"} {
		for _, kind := range []string{"v1\n    kind: ConfigMap", "v1\n    kind: PersistentVolumeClaim"} {
			t.Run(after+kind, spaced(func(t *testing.T, ns, name string) {
				head, tail := around(t, fill(widgetConfig, ns, name))
				one := func(n, at, after string) string {
					body := "data: {of: " + n + "}"
					if strings.Contains(kind, "Claim") {
						body = "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
					}
					return "\n  - name: " + n + "\n    apiVersion: " + kind + "\n" + after + "    template: |\n      metadata: {name: \"" + at + "\", annotations: {of: " + n + "}}\n      " + body + "\n"
				}
				start(t, testkit.Config(t), head+one("config", "{{ .spec.name }}", "")+one("second", "{{ .spec.data.second }}", after)+tail).ready()
				testkit.Apply(t, ns, widget("a", "{name: s1, data: {second: s2}}"))
				<-time.After(time.Minute)
				testkit.Apply(t, ns, widget("a", "{name: s2, data: {second: s3}}"))
				<-time.After(10 * time.Minute)
				_, reason, message := condition(testkit.Get(t, widgets, ns, "a"), "Ready")
				gvr := configMaps
				if strings.Contains(kind, "Claim") {
					gvr = claims8
				}
				for at, of := range map[string]string{"s2": "config", "s3": "second"} {
					if u := testkit.Find(t, gvr, ns, at); u == nil || u.GetAnnotations()["of"] != of {
						t.Errorf("%s is not of %s: %s %s", at, of, reason, message)
					}
				}
			}))
		}
	}
}
