//! What the reference takes the types of values for.

/// Has the reference show values of these types as strings, which is what a user writes.
macro_rules! schema_of_string {
    ($($value:ty),+) => {
        $(impl schemars::JsonSchema for $value {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($value).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        })+
    };
}

pub(super) use schema_of_string;
