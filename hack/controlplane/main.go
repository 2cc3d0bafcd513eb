// Command controlplane is etcd, kube-apiserver and kube-controller-manager in one binary, for tests and demonstrations;
// its file name or first argument says which one runs. One binary takes a third of the space and of the build time of
// three. There is no scheduler and no kubelet: no container ever runs.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// components maps each name of this binary to a function that reads os.Args and returns the exit code.
var components = map[string]func() int{
	"etcd": func() int {
		etcdmain.Main(os.Args)
		return 0
	},
	"kube-apiserver": func() int {
		return cli.Run(apiserver.NewAPIServerCommand())
	},
	"kube-controller-manager": func() int {
		return cli.Run(controllermanager.NewControllerManagerCommand())
	},
}

func main() {
	exitWithParent()
	os.Exit(dispatch())
}

// dispatch runs the component that the file name names, or else the first argument, which it then removes.
func dispatch() int {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if run, ok := components[name]; ok {
		return run()
	}
	if len(os.Args) > 1 {
		if run, ok := components[os.Args[1]]; ok {
			os.Args = os.Args[1:]
			return run()
		}
	}
	fmt.Fprintf(os.Stderr, "usage: %s etcd|kube-apiserver|kube-controller-manager [flags]\n", name)
	return 2
}
