package command

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// LiveKinds asks the API server for its version, so that rules use only what it knows, and prepares to ask for kinds.
// The error names the server: the usual cause is a kubeconfig for another one.
func LiveKinds(cfg *rest.Config) (compile.Options, error) {
	cluster, err := discovered.New(cfg)
	if err != nil {
		return compile.Options{}, fmt.Errorf("connecting to the API server: %w", err)
	}
	version, err := cluster.Version()
	if err != nil {
		return compile.Options{}, fmt.Errorf("connecting to the API server at %s: %w", cfg.Host, err)
	}
	return compile.Options{Kinds: cluster, Version: version}, nil
}
