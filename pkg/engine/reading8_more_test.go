package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// A config that forgets a Secret without generated values and has a new one with some is no loss: guard lets it pass.
func TestR8NewSecretBesideAForgottenOne(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		plain := "\n  - name: plain\n    apiVersion: v1\n    kind: Secret\n    template: |\n      metadata: {name: \"{{ .metadata.name }}-plain\"}\n      stringData: {of: plain}\n"
		login := "\n  - name: login\n    apiVersion: v1\n    kind: Secret\n    template: |\n      metadata: {name: \"{{ .metadata.name }}-login\"}\n      stringData: {of: login}\n    " + generatedLine + "\n"
		base := replaceOnce(t, generatedConfig(t, ns, name), "conventions:\n", "@@conventions:\n") + "guard: {maxDeleted: 0%, minimum: 0}\n"
		head, rest, _ := strings.Cut(base, "downstreams:\n")
		_, tail, _ := strings.Cut(rest, "@@")
		r := start(t, testkit.Config(t), head+"downstreams:"+plain+tail).ready()
		testkit.Apply(t, ns, widget("a", "{}"))
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		r.halt()
		start(t, testkit.Config(t), head+"downstreams:"+login+tail)
		<-time.After(2 * time.Minute)
		if testkit.Find(t, secretKind, ns, "a-login") == nil {
			_, reason, message := condition(testkit.Get(t, widgets, ns, "a"), "Ready")
			t.Errorf("guard holds a new Secret: %s %s", reason, message)
		}
	})
}
