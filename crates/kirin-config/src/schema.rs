//! The types of values in the reference.

/// Makes the reference show values of these types as strings, as users write them.
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
