package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const shop = "shop"

// showApp creates an Appoperator, whose Deployment is Ready only once its pods are.
func showApp(ctx context.Context, s *environment) error {
	cr, text, err := fromFile(app + "/cr.yaml")
	if err != nil {
		return err
	}
	s.console.say("An Appoperator makes a Deployment. Somebody creates")
	s.console.block(text)
	if err := s.create(ctx, apps, cr); err != nil {
		return err
	}
	live, err := s.await(ctx, apps, shop, waitingForPods)
	if err != nil {
		return err
	}
	s.console.done("the Deployment exists, and the status of the Appoperator says so:")
	s.console.block(conditionText(live, "Ready"))
	if err := s.rollOut(ctx, 2); err != nil {
		return err
	}
	live, err = s.await(ctx, apps, shop, ready)
	if err != nil {
		return err
	}
	available, _, _ := unstructured.NestedInt64(live.Object, "status", "availableReplicas")
	if available != 2 {
		return fmt.Errorf("the status says %d available replicas, want 2", available)
	}
	s.console.done("Ready, with a value copied back from the Deployment:")
	s.console.block(conditionText(live, "Ready") + fmt.Sprintf("\nstatus.availableReplicas: %d", available))
	return nil
}

// waitingForPods returns a test for await: a Deployment exists and is not available.
func waitingForPods(u *unstructured.Unstructured) string {
	c := condition(u, "Ready")
	if c == nil {
		return "it has no Ready condition yet"
	}
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "downstreams")
	if c["status"] != "False" || c["reason"] != "Progressing" || len(list) != 1 {
		return fmt.Sprintf("Ready is %v, %v: %v", c["status"], c["reason"], c["message"])
	}
	return ""
}

// rollOut plays the kubelet until the Deployment's rollout is done.
func (s *environment) rollOut(ctx context.Context, replicas int64) error {
	if !s.hasManager {
		return s.simulateDeploymentController(ctx, shop, replicas)
	}
	s.console.note("no kubelet runs here, so no container starts: the demo marks the pods Ready in its place")
	_, err := s.await(ctx, deployments, shop, func(d *unstructured.Unstructured) string {
		if d == nil {
			return "it does not stand"
		}
		if err := s.simulateKubelet(ctx, "app="+shop); err != nil {
			return err.Error()
		}
		observed, _, _ := unstructured.NestedInt64(d.Object, "status", "observedGeneration")
		for _, field := range []string{"replicas", "updatedReplicas", "availableReplicas"} {
			if n, _, _ := unstructured.NestedInt64(d.Object, "status", field); n != replicas || observed != d.GetGeneration() {
				return fmt.Sprintf("status.%s is %d, want %d", field, n, replicas)
			}
		}
		return ""
	})
	return err
}

// showChange changes specs: one change rolls out, another runs through the chain.
func showChange(ctx context.Context, s *environment) error {
	s.console.say("Somebody changes the tag of the application to 1.11.")
	if err := s.patch(ctx, apps, shop, `{"spec":{"tag":"1.11"}}`); err != nil {
		return err
	}
	begin := time.Now()
	d, err := s.await(ctx, deployments, shop, hasImage("registry.example.com/shop:1.11"))
	if err != nil {
		return err
	}
	s.console.done("the Deployment has image %s after %s", imageOf(d), formatDuration(time.Since(begin)))
	live, err := s.await(ctx, apps, shop, func(u *unstructured.Unstructured) string {
		if c := condition(u, "Ready"); c != nil && c["status"] == "False" {
			return ""
		}
		return "it says it is Ready while the rollout is under way"
	})
	if err != nil {
		return err
	}
	s.console.done("it is not called Ready while the rollout is under way:")
	s.console.block(conditionText(live, "Ready"))
	if err := s.rollOut(ctx, 2); err != nil {
		return err
	}
	if _, err = s.await(ctx, apps, shop, ready); err != nil {
		return err
	}
	s.console.done("Ready again")
	s.console.say("\nSomebody changes the title of the Website.")
	if err := s.patch(ctx, websites, "bakery", `{"spec":{"title":"The old bakery"}}`); err != nil {
		return err
	}
	begin = time.Now()
	for _, name := range []string{"bakery-welcome", "bakery-imprint"} {
		if _, err := s.await(ctx, configMaps, name, titled("The old bakery", name)); err != nil {
			return err
		}
	}
	s.console.done("it has run through both Pages into both ConfigMaps after %s", formatDuration(time.Since(begin)))
	_, err = s.await(ctx, websites, "bakery", ready)
	return err
}

// titled returns a test for await: a ConfigMap has the title of its Website.
func titled(title, name string) func(*unstructured.Unstructured) string {
	if name == "bakery-imprint" {
		title += ": imprint"
	}
	return func(u *unstructured.Unstructured) string {
		if u == nil {
			return "it does not stand"
		}
		if have, _, _ := unstructured.NestedString(u.Object, "data", "title"); have != title {
			return fmt.Sprintf("its title is %q, want %q", have, title)
		}
		return ""
	}
}

// podSpec returns the pod template's spec of a Deployment.
func podSpec(d *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedMap(d.Object, "spec", "template", "spec")
	return spec
}

// container returns a Deployment's only container; empty if there is none.
func container(d *unstructured.Unstructured) map[string]any {
	list, _ := podSpec(d)["containers"].([]any)
	if len(list) == 0 {
		return nil
	}
	c, _ := list[0].(map[string]any)
	return c
}

func imageOf(d *unstructured.Unstructured) string {
	image, _ := container(d)["image"].(string)
	return image
}

// hasImage returns a test for await.
func hasImage(want string) func(*unstructured.Unstructured) string {
	return func(d *unstructured.Unstructured) string {
		if d == nil {
			return "it does not stand"
		}
		if have := imageOf(d); have != want {
			return fmt.Sprintf("its image is %s, want %s", have, want)
		}
		return ""
	}
}

// conditionText formats one condition.
func conditionText(u *unstructured.Unstructured, conditionType string) string {
	c := condition(u, conditionType)
	text := fmt.Sprintf("%s: %v\nreason: %v", conditionType, c["status"], c["reason"])
	if message, _ := c["message"].(string); message != "" {
		text += "\nmessage: " + message
	}
	return text
}

// objects lists what a label selects, of all kinds; an empty selector selects everything.
func (s *environment) objects(ctx context.Context, selector string) ([]string, error) {
	var names []string
	for _, kind := range allKinds {
		list, err := s.in(kind).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			names = append(names, list.Items[i].GetKind()+" "+list.Items[i].GetName())
		}
	}
	return names, nil
}
