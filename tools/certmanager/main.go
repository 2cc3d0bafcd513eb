// Command certmanager runs those controllers of cert-manager that issue certificates of a CA, and its cainjector, as
// one process for tests. It takes the API server from KUBECONFIG.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/cert-manager/cert-manager/pkg/api"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/util"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	if len(os.Args) > 1 { // "version"
		fmt.Println(version())
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("KUBECONFIG")); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// version is that of cert-manager.
func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == "github.com/cert-manager/cert-manager" {
			return m.Version
		}
	}
	return ""
}

func run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config = util.RestConfigWithUserAgent(config, "cainjector") // its field manager
	if err := startControllers(ctx, kubeconfig); err != nil {
		return err
	}
	if err := errors.Join(apiextensionsv1.AddToScheme(api.Scheme), scheme.AddToScheme(api.Scheme)); err != nil {
		return err
	}
	ctrl.SetLogger(klog.Background())
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: api.Scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	err = cainjector.RegisterAllInjectors(ctx, mgr, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor:        map[string]bool{cainjector.CustomResourceDefinitionName: true},
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func startControllers(ctx context.Context, kubeconfig string) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{Kubeconfig: kubeconfig})
	if err != nil {
		return err
	}
	common, err := factory.Build()
	if err != nil {
		return err
	}
	for _, name := range []string{
		issuers.ControllerName, issuing.ControllerName, keymanager.ControllerName, readiness.ControllerName,
		requestmanager.ControllerName,
		trigger.ControllerName, approver.ControllerName, ca.CRControllerName, selfsigned.CRControllerName,
	} {
		c, err := controller.Known()[name](factory)
		if err != nil {
			return fmt.Errorf("starting %s: %w", name, err)
		}
		go func() {
			if err := c.Run(1, ctx); err != nil {
				fmt.Fprintln(os.Stderr, "Error:", name, err)
			}
		}()
	}
	common.SharedInformerFactory.Start(ctx.Done())
	common.KubeSharedInformerFactory.Start(ctx.Done())
	return nil
}
