//go:build controlplane

package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/corollary-dev/corollary/internal/testkit"
)

const cronTabOperator = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: crontabs}
watch: {apiVersion: GROUP/v1, kind: CronTab, namespaces: [NS]}
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: "{{ .metadata.name }}"}
      data: {host: "{{ .spec.host }}"}
conventions:
  fieldManager: operator.GROUP
  labels: {GROUP/managed-by: operator}
  hash: {annotation: GROUP/hash}
status: {enabled: false}
`

// TestStandbyConverts: each cluster has definitions and stored objects of its own, so a standby serves and publishes its conversion,
// and migrates. Its operator writes nothing until the cluster is active.
func TestStandbyConverts(t *testing.T) {
	t.Parallel()
	c := newCronTabs(t)
	dir := activationFile(t, c.ns, "leaseDuration: 1h\nrenewDeadline: 40m\nretryPeriod: 500ms\n")
	us, stop := takePart(t, dir, "us", logr.Discard())
	eventuallyActive(t, us)
	lock := read(t, dir+"/activation.yaml")
	fill := strings.NewReplacer("GROUP", c.group, "NS", c.ns)
	for name, text := range map[string]string{
		"activation.yaml": lock, "operator.yaml": fill.Replace(cronTabOperator),
		"conversion.yaml": fill.Replace(cronTabConversion) + "migrate: Auto\n",
	} {
		write(t, c.file(name), text)
	}
	c.user = testkit.Config(t)
	address := testkit.FreeAddress(t)
	eu := c.serve(t, address, address, "--activation-identity", "eu")
	c.eventuallyPublished(t, address)
	c.apply(t, "a", "example.com:80")
	c.eventuallyReads(t, "a", "map[host:example.com port:80]")
	c.store(t, "v1")
	testkit.Eventually(t, patience, func() (bool, string) {
		stored := fmt.Sprint(c.stored(t))
		return stored == "[v1]", "stored versions are " + stored
	})
	eventuallySays(t, eu, `"reason":"Standby"`)
	if testkit.Find(t, configMaps, c.ns, "a") != nil {
		t.Error("the operator of a standby writes")
	}
	stop()
	testkit.Eventually(t, patience, func() (bool, string) {
		return testkit.Find(t, configMaps, c.ns, "a") != nil,
			"the operator writes nothing"
	})
}
