package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// newApp returns an Appoperator.
func newApp(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apps.GroupVersion().String(), "kind": "Appoperator",
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// showInvalid creates an Appoperator that violates a rule of the config.
func showInvalid(ctx context.Context, s *environment) error {
	const name = "too-many"
	s.console.say("The config has the rule self.spec.?replicas.orValue(1) <= 20. Somebody asks for 25 replicas; the " +
		"author reads")
	err := s.create(ctx, apps, newApp(name, map[string]any{"image": "shop", "tag": "1.10", "replicas": int64(25)}))
	if err != nil {
		return err
	}
	live, err := s.await(ctx, apps, name, func(u *unstructured.Unstructured) string {
		if c := condition(u, "Valid"); c != nil && c["status"] == "False" {
			return ""
		}
		return "it is not called invalid"
	})
	if err != nil {
		return err
	}
	s.console.block(conditionText(live, "Valid"))
	message, _ := condition(live, "Valid")["message"].(string)
	if c := condition(live, "Ready"); c["status"] != "False" || !strings.Contains(message, "at most 20 replicas, not 25") {
		return fmt.Errorf("condition Ready is %v, and Valid does not mention the rule", c["status"])
	}
	if _, err := s.in(deployments).Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return errors.Join(errors.New("there is a Deployment for it"), err)
	}
	s.console.done("nothing was created; a Deployment that existed already would be left as it is")
	return nil
}

// hostile is text that would become fields of the pod if templates were filled in as text and then parsed.
const hostile = "hi\"\n      hostNetwork: true\n      containers:\n      - name: miner\n        image: " +
	"evil.example.com/miner\n      x: " +
	"\"\n---\nkind: Secret\n{{ .metadata }}"

// showInjection creates an Appoperator whose text contains YAML.
func showInjection(ctx context.Context, s *environment) error {
	const name = "intruder"
	s.console.say("Whoever may create an Appoperator, and nothing else, tries for more through a text field:")
	cr := newApp(name, map[string]any{"image": "shop", "tag": "1.10", "greeting": hostile})
	text, err := yaml.Marshal(map[string]any{"spec": cr.Object["spec"]})
	if err != nil {
		return err
	}
	s.console.block(string(text))
	if err := s.create(ctx, apps, cr); err != nil {
		return err
	}
	d, err := s.await(ctx, deployments, name, func(u *unstructured.Unstructured) string {
		if u == nil {
			return "it does not stand"
		}
		return ""
	})
	if err != nil {
		return err
	}
	env, _ := container(d)["env"].([]any)
	if len(env) != 1 {
		return fmt.Errorf("the container has the environment %v, want one variable", env)
	}
	greeting, _ := env[0].(map[string]any)
	if greeting["value"] != hostile {
		return fmt.Errorf("the text did not arrive as it was: %q", greeting["value"])
	}
	containers, _ := podSpec(d)["containers"].([]any)
	if _, set := podSpec(d)["hostNetwork"]; set || len(containers) != 1 {
		return fmt.Errorf("the text became structure: %v", podSpec(d))
	}
	shown, err := yaml.Marshal(map[string]any{"containers": []any{map[string]any{"name": container(d)["name"],
		"env": env}}})
	if err != nil {
		return err
	}
	s.console.done("in the Deployment it is that string, byte for byte; hostNetwork is not set, and there is one " +
		"container:")
	s.console.block(string(shown))
	return nil
}
