//go:build controlplane

package clusters

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/pkg/cli"
)

// asCommand has this program be corollary.
const asCommand = "CLUSTERS_TEST_AS_COMMAND"

//go:embed testdata/crd.yaml
var widgetCRD string

// planes are the two clusters, by their identity.
var planes = map[string]*controlplane.ControlPlane{}

var clusterNames = []string{"eu", "us"}

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(cli.Main(os.Args[1:], cli.System()))
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} { // of no account: processes inherit them
		if err := os.Setenv(name, "test"); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	for _, name := range clusterNames {
		o := controlplane.Options{CRDs: []string{widgetCRD}, Audit: true, AuditBodies: "configmaps"}
		plane, started := controlplane.Start(context.Background(), o)
		if started != nil {
			return 1, started
		}
		defer func() { err = errors.Join(err, plane.Stop()) }()
		planes[name] = plane
	}
	return m.Run(), nil
}
