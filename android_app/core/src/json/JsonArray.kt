package org.ondeviceprofiler.core

/** An array. */
public data class JsonArray(public val items: List<Json>) : Json
