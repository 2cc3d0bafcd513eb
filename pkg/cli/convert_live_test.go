package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// What is stored in several versions is read in the one that is stored now, and the output says so.
func TestProveLiveOfSeveralVersions(t *testing.T) {
	t.Parallel()
	memory(t)
	c := newCronTabs(t)
	c.apply(t, "a", "example.com:80")
	c.store(t, "v1")
	code, out := run(t, "convert", "prove", "-c", c.file("conversion.yaml"), "--live", "--kubeconfig", testkit.Kubeconfig(t))
	if !strings.Contains(out, "objects may be stored as v1beta1, too") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// What the objects of the cluster would lose is found by prove --live, which shows no value.
func TestProveLive(t *testing.T) {
	t.Parallel()
	memory(t)
	failing := func(text string) string {
		return strings.ReplaceAll(
			text,
			"self.spec.hostPort.split(':')[0]",
			"self.spec.hostPort.split(':')[self.spec.hostPort.endsWith(':8080') ? 7 : 0]",
		)
	}
	lossy := func(text string) string { return strings.ReplaceAll(text, "string(self.spec.port)", "'80'") }
	for _, row := range []struct {
		reason string
		change func(text string) string
		spec   string // of one more object
		code   int
		says   string
	}{
		{reason: "everything survives", spec: "{hostPort: 'secret.example.com:8080'}", says: "151 objects in v1beta1: nothing is lost"},
		{reason: "one value is lost", change: lossy, spec: "{hostPort: 'secret.example.com:8080'}", code: 1,
			says: "odd: .spec.hostPort is different after the way from v1beta1 to v1 and back"},
		{reason: "one object cannot be converted", change: failing, spec: "{hostPort: 'secret.example.com:8080'}", code: 1,
			says: "odd: converting from v1beta1 to v1: set .spec.host: "},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			c := newCronTabs(t)
			text := strings.ReplaceAll(cronTabConversion, "GROUP", c.group)
			if row.change != nil {
				text = row.change(text)
			}
			write(t, c.file("conversion.yaml"), text)
			for i := range 150 {
				c.apply(t, fmt.Sprintf("t%03d", i), "example.com:80")
			}
			testkit.Apply(t, c.ns, fmt.Sprintf("{apiVersion: %s/v1beta1, kind: CronTab, metadata: {name: odd}, spec: %s}", c.group, row.spec))
			code, out := run(t, "convert", "prove", "-c", c.file("conversion.yaml"), "--live", "--kubeconfig", testkit.Kubeconfig(t))
			if code != row.code || !strings.Contains(out, row.says) || strings.Contains(out, "secret") {
				t.Errorf("exit code %d\n%s", code, out)
			}
		})
	}
}
