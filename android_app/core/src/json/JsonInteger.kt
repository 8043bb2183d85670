package org.ondeviceprofiler.core

/** A number without fraction and exponent, in 64 bits. */
public data class JsonInteger(public val value: Long) : Json
