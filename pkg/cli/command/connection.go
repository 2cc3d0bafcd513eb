package command

import (
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	// Kubeconfigs of people name authentication providers; kubectl links the same.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
)

// ConnectionFlag is the annotation of flags that say how an API server is reached. Help lists them after the others:
// there are two dozen, and whoever knows kubectl knows them.
const ConnectionFlag = "corollary-connection"

// Connection is how an API server is reached: kubectl's flags and kubeconfig rules, and inside a pod its service
// account. The flags are those that clientcmd itself offers, which are kubectl's names; cli-runtime would add a module
// for them alone.
type Connection struct {
	kubeconfig string
	Overrides  clientcmd.ConfigOverrides
	qps        float32
	burst      int
	// Flags are those of bind, to ask which were given.
	Flags *pflag.FlagSet
}

// Bind adds the flags. namespaceUsage says what -n means to the command; empty if it means nothing.
func (c *Connection) Bind(cmd *cobra.Command, namespaceUsage string) {
	c.Flags = pflag.NewFlagSet("connection", pflag.ContinueOnError)
	flags := c.Flags
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	names.ContextOverrideFlags.Namespace.Description = namespaceUsage
	if namespaceUsage == "" {
		names.ContextOverrideFlags.Namespace.LongName = ""
	}
	flags.StringVar(&c.kubeconfig, "kubeconfig", "",
		"Path to the kubeconfig file; else $KUBECONFIG, ~/.kube/config, or a pod's service account")
	clientcmd.BindOverrideFlags(&c.Overrides, flags, names)
	flags.Float32Var(&c.qps, "kube-api-qps", -1,
		"Requests per second to the API server; -1: no client-side limit, so that the server's priority and fairness decides")
	flags.IntVar(&c.burst, "kube-api-burst", 0, "Burst of requests above --kube-api-qps; 0: twice the rate")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "namespace" { // which means something else to each command
			f.Annotations = map[string][]string{ConnectionFlag: {"true"}}
		}
	})
	cmd.Flags().AddFlagSet(flags)
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string,
		string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return c.contexts(), cobra.ShellCompDirectiveNoFileComp
	})
}

func (c *Connection) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.Overrides)
}

// REST returns the client configuration. No request is made.
func (c *Connection) REST() (*rest.Config, error) {
	cfg, err := c.loader().ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err) && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "":
		return nil, Usagef("no API server is configured: KUBECONFIG is %s, which does not exist or names no cluster: add "+
			"--kubeconfig FILE, or "+
			"fix it",
			os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	case clientcmd.IsEmptyConfig(err):
		return nil, Usagef("no API server is configured: add --kubeconfig FILE, or set KUBECONFIG; inside a pod its " +
			"service account is used")
	case err != nil:
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if as := c.Overrides.AuthInfo; as.Impersonate != "" {
		// A pod's own configuration knows nothing of --as; unheeded it would mean more rights than were asked for.
		cfg.Impersonate = rest.ImpersonationConfig{UserName: as.Impersonate, UID: as.ImpersonateUID,
			Groups: as.ImpersonateGroups,
			Extra:  as.ImpersonateUserExtra}
	}
	cfg.QPS, cfg.Burst = c.qps, c.burst
	if cfg.QPS == 0 {
		cfg.QPS = -1 // the client library takes 0 for a limit of 5
	}
	if cfg.Burst == 0 {
		cfg.Burst = max(int(2*cfg.QPS), 1)
	}
	// as kubectl prints them
	cfg.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})
	cfg.UserAgent = fmt.Sprintf("corollary/%s (%s/%s)", Build().Version, runtime.GOOS, runtime.GOARCH)
	return cfg, nil
}

// Dynamic returns a client for objects of any kind. No request is made.
func (c *Connection) Dynamic() (dynamic.Interface, error) {
	cfg, err := c.REST()
	if err != nil {
		return nil, err
	}
	return DynamicFor(cfg)
}

// DynamicFor returns a client for objects of any kind.
func DynamicFor(cfg *rest.Config) (dynamic.Interface, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing the client: %w", err)
	}
	return client, nil
}

// Namespace is what kubectl would take: -n, the context's, the pod's own, or "default".
func (c *Connection) Namespace() (string, error) {
	namespace, _, err := c.loader().Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the namespace of the kubeconfig: %w", err)
	}
	return namespace, nil
}

// contexts lists the names that --context may take.
func (c *Connection) contexts() []cobra.Completion {
	raw, err := c.loader().RawConfig()
	if err != nil {
		return nil
	}
	var names []cobra.Completion
	for name := range raw.Contexts {
		names = append(names, name)
	}
	return names
}
