{{/* Name of the chart, for labels. */}}
{{- define "corollary.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimAll "-" -}}
{{- end -}}

{{/*
Name of the release's objects: the release's, with the chart's where that is not part of it. Room is left for the endings
that objects add. A release may have dots in its name; the name of a Service may not.
*/}}
{{- define "corollary.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimAll "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $release := replace "." "-" .Release.Name -}}
{{- if contains $name $release -}}
{{- $release | trunc 50 | trimAll "-" -}}
{{- else -}}
{{- printf "%s-%s" $release $name | trunc 50 | trimAll "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "corollary.labels" -}}
{{- include "corollary.labelsWith" (dict "root" . "more" dict) -}}
{{- end -}}

{{/*
Labels of an object that has some of its own: {root, more}. The chart's come first, since a ServiceMonitor finds the Service by
them, then those of that object, then what all have in common.
*/}}
{{- define "corollary.labelsWith" -}}
{{- $chart := dict
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimAll "-")
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $selected := include "corollary.selectorLabels" .root | fromYaml -}}
{{- merge $selected $chart (default dict .more) (default dict .root.Values.commonLabels) | toYaml -}}
{{- end -}}

{{/* Labels by which the pods of this release are found. They never change: a Deployment's selector cannot. */}}
{{- define "corollary.selectorLabels" -}}
app.kubernetes.io/name: {{ include "corollary.name" . | toYaml }}
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
{{- end -}}

{{/* Name of the account that the process runs as. */}}
{{- define "corollary.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "corollary.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is not set: name the account to run as, or set serviceAccount.create=true" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The image, by its digest where that is given. */}}
{{- define "corollary.image" -}}
{{- $repository := required (include "corollary.noImage" .) .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "corollary.noImage" -}}
image.repository is not set: name the image as your registry has it, such as --set image.repository=registry.example.com/corollary
{{- end -}}

{{/* Name of the Lease. */}}
{{- define "corollary.leaderElectionId" -}}
{{- default (include "corollary.fullname" .) .Values.leaderElection.id -}}
{{- end -}}
