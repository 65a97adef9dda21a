# frozen_string_literal: true

# Makes the trackers and roles of a new Redmine, and gives its administrator a password.
require_relative "config/environment"

Redmine::DefaultData::Loader.load("en")
Setting.rest_api_enabled = "1"
Setting.host_name = "site.example"
admin = User.find_by!(login: "admin")
admin.password = admin.password_confirmation = "oak-oak-oak"
admin.must_change_passwd = false
admin.save!
