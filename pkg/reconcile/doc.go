// Package reconcile reconciles one upstream: it finds which it is and whether it is to be acted on, decides, acts,
// finalizes and reports. It does so for run; by dry runs for plan, why and get (Preview), and for guard (Count). It
// neither watches nor queues: that is package engine.
package reconcile
