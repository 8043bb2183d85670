package org.ondeviceprofiler.core

/** The format in which records last changed; every older one is read too. */
internal const val SCHEMA_VERSION: Int = 2

/** Read one record from JSON; `where` names its file or sender, `title` its kind. Throws InvalidRecord. */
internal fun <T> decode(data: ByteArray, title: String, where: String, read: Value.() -> T): T =
    try {
        Value(parseJson(data), "$").read()
    } catch (error: InvalidJson) {
        throw InvalidRecord("$where: not a valid $title: ${error.message}", error)
    } catch (error: InvalidRecord) {
        throw InvalidRecord("$where: not a valid $title: ${error.message}", error)
    }

/** Return a record's line, without its end. */
internal fun encode(record: Writable): ByteArray = record.toJson().write().toByteArray()
