package apply

import (
	"strings"
	"testing"
)

// TestProbeIsStrict: a probe refuses an unknown field as an apply does.
func TestProbeIsStrict(t *testing.T) {
	f := setup(t)
	tg := f.target(deployments, "web")
	typo := doc(t, strings.Replace(deployment, "replicas: 3", "replcas: 3", 1))
	err := f.c.Accepts(t.Context(), tg, typo)
	expectError(t, err, nil, ReasonRejected)
	messageContains(t, err, `unknown field "spec.replcas"`)
}
