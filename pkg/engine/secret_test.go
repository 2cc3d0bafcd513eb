package engine_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// secretConfig has a downstream for each way to complain about a Secret that is an input.
func secretConfig(ns, name string) string {
	conf := withInputs(ns, name, "kind: ConfigMap\n    objectName", "kind: Secret\n    objectName", "events: None", "events: All")
	var list strings.Builder
	sinks := testkit.SecretSinks()
	for _, sink := range slices.Sorted(maps.Keys(sinks)) {
		fmt.Fprintf(&list, "  - name: %s\n    %s\n", sink, sinks[sink])
	}
	at, end := strings.Index(conf, "  - name: config"), strings.Index(conf, "conventions:\n")
	return conf[:at] + list.String() + conf[end:]
}

// applySecrets makes each Secret and a Widget that reads it.
func applySecrets(t *testing.T, ns string) map[string][]byte {
	t.Helper()
	secrets := testkit.Secrets()
	for name, value := range secrets {
		testkit.Apply(t, ns, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"}, data: {color: '"+base64.StdEncoding.EncodeToString(value)+"'}}")
		applyReader(t, ns, name, name)
	}
	return secrets
}

// No part of a Secret that is an input is in a condition, an event, the log, a metric or the result of a survey, in any encoding,
// whatever error templates, expressions, the API server and admission report.
func TestSecretInputIsNotReported(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		testkit.Policy(t, ns, "Validating", "CREATE, UPDATE", "", "configmaps", // quotes what the objects hold
			`  validations: [{expression: "!('denied' in object.metadata.?annotations.orValue({}))", messageExpression: "'no ' + object.data.x"}]`)
		testkit.Eventually(t, patience, func() (bool, string) {
			_, err := testkit.TryApply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: probe, annotations: {denied: x}}, data: {x: y}}")
			return err != nil, "the policy does not refuse anything yet"
		})
		secrets := applySecrets(t, ns)
		conf := secretConfig(ns, name)
		log := startLogged(t, conf)
		for upstream, value := range secrets {
			eventuallyCondition(t, ns, upstream, "False", "", "")
			waitEvent(t, ns, upstream, "RenderFailed", "")
			notLeaked(t, upstream, value, map[string]any{"the upstream": testkit.Get(t, widgets, ns, upstream).Object})
		}
		all := map[string]any{"events": testkit.List(t, events, ns, ""), "the log": log(), "metrics": gathered(t)}
		for upstream, value := range secrets {
			notLeaked(t, upstream, value, all)
		}
		for sink := range testkit.SecretSinks() { // each of them came to its complaint
			failed := metric(t, "corollary_objects", name, "downstream", sink, "state", "RenderFailed") + metric(t, "corollary_failures_total", name, "downstream", sink)
			if rules := sink == "ready" || sink == "live" || sink == "failed"; !rules && failed == 0 {
				t.Errorf("nothing complained about downstream %s", sink)
			}
		}
	})
}

// A rule of the config that reads a Secret does not quote it either.
func TestSecretInRuleIsNotReported(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		secrets := applySecrets(t, ns)
		conf := withInputs(ns, name, "kind: ConfigMap\n    objectName", "kind: Secret\n    objectName", "events: None", "events: All")
		log := startLogged(t, strings.Replace(conf, "downstreams:\n", "validate: [{rule: int(inputs.settings.data.color) > 3, message: too small}]\ndownstreams:\n", 1))
		for upstream, value := range secrets {
			eventuallyCondition(t, ns, upstream, "False", "Invalid", "type conversion error evaluating rule")
			waitEvent(t, ns, upstream, "Invalid", "")
			notLeaked(t, upstream, value, map[string]any{"the upstream": testkit.Get(t, widgets, ns, upstream).Object, "events": testkit.List(t, events, ns, ""), "the log": log()})
		}
	})
}

func notLeaked(t *testing.T, upstream string, value []byte, texts map[string]any) {
	t.Helper()
	noneLeaked(t, upstream, value, texts, testkit.Leaked)
}

func noneLeaked(t *testing.T, upstream string, value []byte, texts map[string]any, search func(string, []byte) []string) {
	t.Helper()
	for what, text := range texts {
		written, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if leaked := search(string(written), value); len(leaked) > 0 {
			at := strings.Index(string(written), leaked[0])
			t.Errorf("%s tells %d pieces of %s, such as %q: …%s", what, len(leaked), upstream, leaked[0], written[max(0, at-300):min(len(written), at+100)])
		}
	}
}

// gathered are all metrics as text.
func gathered(t *testing.T) string {
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(families)
}
