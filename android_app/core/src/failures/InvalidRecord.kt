package org.ondeviceprofiler.core

/** A record, plan or file that breaks its rules. */
internal class InvalidRecord(message: String, cause: Throwable? = null) : Refusal(message, cause)
