{{/* Names, labels and references that several objects share. */}}
{{- define "ingestd.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end }}

{{- define "ingestd.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "ingestd.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "ingestd.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "ingestd.selector" -}}
app.kubernetes.io/name: {{ include "ingestd.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Selects the daemon's pod, and no pod of a job. */}}
{{- define "ingestd.daemon" -}}
{{ include "ingestd.selector" . }}
app.kubernetes.io/component: daemon
{{- end }}

{{/* Labels of a pod template: (list root component). Without versions: a new one restarts no pod. */}}
{{- define "ingestd.podLabels" -}}
{{- $root := index . 0 -}}
{{ include "ingestd.selector" $root }}
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels of the executors of this release, apart from Spark's own. */}}
{{- define "ingestd.executor" -}}
{{ include "ingestd.selector" . }}
app.kubernetes.io/component: executor
{{- end }}

{{/* The configuration; with executors, also the settings of Spark that create and reach them. */}}
{{- define "ingestd.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if .Values.executors.instances -}}
{{- $config = merge $config (dict "spark" (include "ingestd.sparkSettings" . | fromYaml)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}

{{/* The files in /etc/ingestd. */}}
{{- define "ingestd.files" -}}
ingestd.yaml: |
  {{- include "ingestd.config" . | nindent 2 }}
{{- if .Values.executors.instances }}
executor.yaml: |
  {{- include "ingestd.executorPod" . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "ingestd.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "ingestd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Metadata of an object: (list root suffix labels annotations). */}}
{{- define "ingestd.metadata" -}}
{{- $root := index . 0 -}}
name: {{ include "ingestd.fullname" $root }}{{ index . 1 }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "ingestd.labels" $root | nindent 2 }}
  {{- with index . 2 }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (index . 3) $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "ingestd.image" -}}
{{- with .Values.image -}}
{{- $repository := ternary .repository (printf "%s/%s" .registry .repository) (empty .registry) -}}
{{- if .digest -}}
{{ $repository }}@{{ .digest }}
{{- else -}}
{{ $repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "ingestd.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "ingestd.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{- define "ingestd.configMap" -}}
{{ default (include "ingestd.fullname" .) .Values.existingConfigMap }}
{{- end }}

{{- define "ingestd.claim" -}}
{{ default (include "ingestd.fullname" .) .Values.persistence.existingClaim }}
{{- end }}

{{/* HTTPS where the pages have a certificate. */}}
{{- define "ingestd.scheme" -}}
{{- ternary "HTTPS" "HTTP" (not (empty (dig "http" "tls-certificate" "" .Values.config))) -}}
{{- end }}

{{/* A probe; over HTTPS where the pages are. */}}
{{- define "ingestd.probe" -}}
{{- $root := index . 0 -}}
{{- $probe := deepCopy (index . 1) -}}
{{- if and $probe.httpGet (eq (include "ingestd.scheme" $root) "HTTPS") -}}
{{- $_ := set $probe "httpGet" (merge (dict) $probe.httpGet (dict "scheme" "HTTPS")) -}}
{{- end -}}
{{- toYaml $probe -}}
{{- end }}

{{/* What a monitor must know of the pages. */}}
{{- define "ingestd.endpoint" -}}
scheme: {{ include "ingestd.scheme" . | lower }}
{{- end }}

{{/* Port of the pages, from http.listen. */}}
{{- define "ingestd.port" -}}
{{- $listen := dig "http" "listen" "0.0.0.0:8080" .Values.config -}}
{{- regexFind "[0-9]+$" $listen -}}
{{- end }}
