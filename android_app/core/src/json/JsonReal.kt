package org.ondeviceprofiler.core

/** A finite number with a fraction or an exponent. */
public data class JsonReal(public val value: Double) : Json
